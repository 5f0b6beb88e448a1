{{- define "millwright.server" -}}
app.kubernetes.io/name: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end }}
{{- define "millwright.worker" -}}
app.kubernetes.io/name: {{ .Release.Name }}
app.kubernetes.io/component: worker
{{- end }}
{{- define "millwright.labels" -}}
app.kubernetes.io/part-of: millwright
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}
{{- define "millwright.podSecurity" -}}
automountServiceAccountToken: false
terminationGracePeriodSeconds: 40
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: { type: RuntimeDefault }
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- define "millwright.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}
