module luggagetag

go 1.18
