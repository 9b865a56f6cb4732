module source

go 1.26
