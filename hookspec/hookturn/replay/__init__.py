"""Recorded sessions through an engine, dry: what would my hooks have said?"""
