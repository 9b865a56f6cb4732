module template

go 1.24
