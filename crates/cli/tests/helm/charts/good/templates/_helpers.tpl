{{- define "good.labels" -}}
app: {{ .Chart.Name }}
release: {{ .Release.Name | quote }}
{{- end }}
