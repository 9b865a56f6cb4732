module baseline

go 1.24

require (
	github.com/gobwas/glob v0.2.3
	sigs.k8s.io/yaml v1.6.0
)

require go.yaml.in/yaml/v2 v2.4.2 // indirect
