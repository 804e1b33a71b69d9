echo "Hey, $1!"
