{{/* The image that measures over the network. */}}
{{- define "lowlatency-operator.trafficImage" -}}
{{ .Values.trafficImage | default (printf "ghcr.io/lowlatency-dev/lowlatency-traffic:v%s" .Chart.AppVersion) }}
{{- end -}}

{{/* Whether there are a ServiceMonitor and alerts: only OpenShift is sure to have the Prometheus operator, and a service CA. */}}
{{- define "lowlatency-operator.monitoring" -}}
{{- if ne .Values.monitoring "Auto" -}}
{{ .Values.monitoring }}
{{- else if eq .Values.platform "OpenShift" -}}
Enabled
{{- else -}}
Disabled
{{- end -}}
{{- end -}}

{{/* The image with its digest, or else its tag. All values are refused here that the schema cannot refuse. */}}
{{- define "lowlatency-operator.image" -}}
{{- if eq .Values.namespaces.operator .Values.namespaces.agents -}}
{{- fail "namespaces.operator and namespaces.agents are the same: the operator needs a namespace that admits restricted pods only, and agents one that admits what mounts the host" -}}
{{- end -}}
{{- if and (eq .Values.platform "OpenShift") (eq .Values.enactment "Enabled") -}}
{{- fail "enactment is Enabled and platform is OpenShift: nodes of OpenShift are changed by its machine-config operator; set platform to Kubernetes, K3s or RKE2 for ordinary hosts" -}}
{{- end -}}
{{- if and (ne .Values.platform "OpenShift") (eq .Values.dashboard "Console") -}}
{{- fail "dashboard is Console and platform is not OpenShift: the console is a part of OpenShift; set dashboard to Grafana, or to Disabled" -}}
{{- end -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "v%s" .Chart.AppVersion) }}
{{- end -}}
{{- end -}}
