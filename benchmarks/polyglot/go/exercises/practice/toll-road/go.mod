module tollroad

go 1.18
