module tidetable

go 1.18
