module kustomize

go 1.26
