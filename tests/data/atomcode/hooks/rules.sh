echo "Write tests first."
