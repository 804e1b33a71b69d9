# Prints the sum of the numbers on its input, one a line.
sum=0
while read -r number; do
    sum=$((sum + number))
done
echo "$sum"
