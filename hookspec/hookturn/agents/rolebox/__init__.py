"""rolebox: the tools that its hooks see."""
