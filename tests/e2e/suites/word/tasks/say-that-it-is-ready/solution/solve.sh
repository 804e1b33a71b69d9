echo ready > status.txt
