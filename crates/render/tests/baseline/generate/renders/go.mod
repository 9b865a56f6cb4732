module renders

go 1.26
