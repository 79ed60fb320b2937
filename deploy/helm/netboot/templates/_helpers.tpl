{{- define "netboot.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "netboot.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "netboot.labels" -}}
{{ include "netboot.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: netboot
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "netboot.account" -}}
{{ .Values.serviceAccount.name | default (include "netboot.name" .) }}
{{- end }}

{{/* Whether operators' API and metrics are to be had from outside of the Pod; "": they are not. */}}
{{- define "netboot.exposed" -}}
{{- if or .Values.management.tlsSecret .Values.management.plainHttp }}yes{{ end }}
{{- end }}

{{/* Whether its processes ask who leads (`replicas` of netboot.yaml); "": they act, whoever else does. */}}
{{- define "netboot.elects" -}}
{{- if or (gt (int .Values.replicas) 1) (hasKey .Values.config "replicas") }}yes{{ end }}
{{- end }}

{{/* All addresses, for a port to follow. */}}
{{- define "netboot.any" -}}
{{ if .Values.ipv6 }}[::]{{ else }}0.0.0.0{{ end }}
{{- end }}

{{/* netboot.yaml: `config`, and over it what this chart mounts and opens. */}}
{{- define "netboot.config" -}}
{{- $v := .Values -}}
{{- $any := include "netboot.any" . -}}
{{- $management := dict "listen" (printf "127.0.0.1:%d" (int $v.management.port)) -}}
{{- if include "netboot.exposed" . }}{{ $_ := set $management "listen" (printf "%s:%d" $any (int $v.management.port)) }}{{ end -}}
{{- if $v.management.tlsSecret }}{{ $_ := set $management "tls" (dict "certificate" "tls/management/tls.crt" "key" "tls/management/tls.key" "authority" "tls/management/ca.crt") }}{{ end -}}
{{- if and $v.management.plainHttp (not $v.management.tlsSecret) }}{{ $_ := set $management "plain_http" true }}{{ end -}}
{{- $own := dict "site" $v.site "data" "/var/lib/netboot/data" "store" "/var/lib/netboot/store" -}}
{{- $_ := set $own "provisioning" (dict "listen" (printf "%s:%d" $any (int $v.provisioning.port)) "url" $v.provisioning.url) -}}
{{- $_ := set $own "management" $management -}}
{{- if $v.inventory.kubernetes }}
{{- $declared := dict "kubeconfig" "/run/netboot/kubernetes/kubeconfig" "namespace" .Release.Namespace "holds" $v.inventory.holds -}}
{{- if $v.inventory.shipperKubeconfig }}{{ $_ := set $declared "shipper" (printf "secrets/%s" $v.inventory.shipperKubeconfig) }}{{ end -}}
{{- if $v.inventory.ordersKubeconfig }}{{ $_ := set $declared "orders" (printf "secrets/%s" $v.inventory.ordersKubeconfig) }}{{ end -}}
{{- $_ := set $own "inventory_kubernetes" $declared -}}
{{- end -}}
{{- if include "netboot.elects" . }}{{ $_ := set $own "replicas" (dict "count" (int $v.replicas)) }}{{ end -}}
{{- with $v.sharedKeys }}
{{- if .kubeconfig }}{{ $_ := set $own "keys_kubernetes" (dict "kubeconfig" (printf "secrets/%s" .kubeconfig) "namespace" $.Release.Namespace "secret" .secret) }}{{ end -}}
{{- end -}}
{{- with $v.enrolments }}
{{- if .joinKubeconfig }}{{ $_ := set $own "enrolments_kubernetes" (dict "join" (printf "secrets/%s" .joinKubeconfig) "reader" (printf "secrets/%s" .readerKubeconfig) "namespace" $.Release.Namespace) }}{{ end -}}
{{- end -}}
{{- if $v.join.url }}
{{- $_ := set $own "join" (dict "listen" (printf "%s:%d" $any (int $v.join.port)) "url" $v.join.url "certificate" "tls/join/tls.crt" "key" "tls/join/tls.key" "authorities" "tls/join/ca.crt") -}}
{{- end -}}
{{- if $v.upstream.place }}
{{- $upstream := dict "place" $v.upstream.place "plain_http" $v.upstream.plainHttp -}}
{{- if $v.upstream.credentials }}{{ $_ := set $upstream "credentials" (printf "secrets/%s" $v.upstream.credentials) }}{{ end -}}
{{- if $v.upstream.authority }}{{ $_ := set $upstream "authority" (printf "authorities/%s" $v.upstream.authority) }}{{ end -}}
{{- $_ := set $own "upstream" $upstream -}}
{{- end -}}
{{- toYaml (mergeOverwrite (deepCopy $v.config) $own) -}}
{{- end }}

{{/* What the schema cannot say, for it spans two values. */}}
{{- define "netboot.checked" -}}
{{- $v := .Values -}}
{{- if and $v.management.tlsSecret $v.management.plainHttp }}{{ fail "management.tlsSecret and management.plainHttp exclude each other: remove one of them" }}{{ end -}}
{{- if and $v.serviceMonitor.enabled (not (include "netboot.exposed" .)) }}{{ fail "serviceMonitor.enabled: Prometheus cannot reach a listener of loopback: give management.tlsSecret, or management.plainHttp behind a mesh of your own" }}{{ end -}}
{{- if and $v.join.url (not $v.join.tlsSecret) }}{{ fail "join.url: give join.tlsSecret too, a Secret with tls.crt, tls.key and ca.crt" }}{{ end -}}
{{- if and $v.inventory.holds (not $v.inventory.kubernetes) }}{{ fail "inventory.holds are custom resources: set inventory.kubernetes" }}{{ end -}}
{{- if and $v.inventory.shipperKubeconfig (not $v.inventory.kubernetes) }}{{ fail "inventory.shipperKubeconfig writes into custom resources: set inventory.kubernetes" }}{{ end -}}
{{- if and $v.inventory.ordersKubeconfig (not $v.inventory.kubernetes) }}{{ fail "inventory.ordersKubeconfig writes custom resources: set inventory.kubernetes" }}{{ end -}}
{{- if and $v.inventory.ordersKubeconfig (not $v.inventory.shipperKubeconfig) }}{{ fail "inventory.ordersKubeconfig: replicas that share orders share what they know of boots: give inventory.shipperKubeconfig" }}{{ end -}}
{{- if and $v.inventory.ordersKubeconfig (not (include "netboot.elects" .)) }}{{ fail "inventory.ordersKubeconfig is for replicas: one has orders on its own disk; remove it, or set replicas" }}{{ end -}}
{{- if and $v.inventory.configMap $v.inventory.kubernetes }}{{ fail "inventory.configMap has files, and with inventory.kubernetes none are read: remove it, or set inventory.kubernetes to false" }}{{ end -}}
{{- if not (or $v.inventory.configMap $v.inventory.kubernetes) }}{{ fail "inventory.kubernetes is false: give inventory.configMap, whose *.yaml are the inventory" }}{{ end -}}
{{- if and $v.upstream.authority (not $v.authorities.configMap) }}{{ fail "upstream.authority is a file of authorities.configMap: give that" }}{{ end -}}
{{- if and (hasKey $v.config "join") (not $v.join.url) }}{{ fail "config.join has no certificate and no port without join.url: give that, and join.tlsSecret" }}{{ end -}}
{{- if and (not $v.serviceAccount.create) (not $v.serviceAccount.name) }}{{ fail "serviceAccount.create is false: give serviceAccount.name, an account that is there" }}{{ end -}}
{{- if and $v.networkPolicy.enabled (not $v.hostNetwork) }}
{{- if and $v.serviceMonitor.enabled (not $v.networkPolicy.operators) }}{{ fail "serviceMonitor.enabled: the NetworkPolicy lets nobody in to take metrics: name Prometheus in networkPolicy.operators" }}{{ end -}}
{{- $asked := dict -}}
{{- if $v.upstream.place }}{{ $_ := set $asked "upstream.place" $v.upstream.place }}{{ end -}}
{{- if $v.inventory.kubernetes }}{{ $_ := set $asked "inventory.server" $v.inventory.server }}{{ end -}}
{{- range $what, $url := $asked }}
{{- $plain := or (hasPrefix "http://" $url) (and $v.upstream.plainHttp (eq $what "upstream.place")) -}}
{{- $authority := regexFind "^[^/]*" (regexReplaceAll "^https?://" $url "") -}}
{{- $port := regexFind "[0-9]+$" (regexFind ":[0-9]+$" $authority) | default (ternary "80" "443" $plain) -}}
{{- if not (has $port (toStrings $v.networkPolicy.egressPorts)) }}{{ fail (printf "%s is asked on port %s, which networkPolicy.egressPorts lacks: add it" $what $port) }}{{ end -}}
{{- end }}
{{- end -}}
{{- if ne (empty $v.enrolments.joinKubeconfig) (empty $v.enrolments.readerKubeconfig) }}{{ fail "enrolments.joinKubeconfig and enrolments.readerKubeconfig are of two accounts, and go together: give both" }}{{ end -}}
{{- range $key := list "data" "enrolments_kubernetes" "inventory_kubernetes" "inventory_writable" "keys_kubernetes" "site" "store" "upstream" }}
{{- if hasKey $v.config $key }}{{ fail (printf "config.%s is the chart's to say: remove it, values of its own have what may be chosen" $key) }}{{ end }}
{{- end -}}
{{- range $name := list "data" "store" }}
{{- $one := index $v.storage $name }}
{{- if and $one.existingClaim $one.hostPath }}{{ fail (printf "storage.%s.existingClaim and storage.%s.hostPath exclude each other: remove one of them" $name $name) }}{{ end -}}
{{- end -}}
{{- include "netboot.checkedReplicas" . -}}
{{- end }}

{{/* What several replicas want, and what of it the service's own check of netboot.yaml says only when it starts. */}}
{{- define "netboot.checkedReplicas" -}}
{{- $v := .Values -}}
{{- $several := gt (int $v.replicas) 1 -}}
{{- $of := ternary (printf "replicas: %d" (int $v.replicas)) "config.replicas" $several -}}
{{- $elects := include "netboot.elects" . -}}
{{- if $elects }}
{{- if not $v.inventory.kubernetes }}{{ fail (printf "%s: all must know the same machines: set inventory.kubernetes" $of) }}{{ end -}}
{{- if not $v.inventory.holds }}{{ fail (printf "%s: what holds a machine must be known to all: set inventory.holds" $of) }}{{ end -}}
{{- if not $v.sharedKeys.kubeconfig }}{{ fail (printf "%s: a machine begins at one and goes on at another, by keys that all have: give sharedKeys.kubeconfig (docs/helm.md, From one replica to three)" $of) }}{{ end -}}
{{- if and $v.join.url (not $v.enrolments.joinKubeconfig) }}{{ fail (printf "%s: with join.url all must know whose TPM is whose: give enrolments.joinKubeconfig and enrolments.readerKubeconfig (docs/helm.md, From one replica to three)" $of) }}{{ end -}}
{{- end -}}
{{- if has $v.sharedKeys.secret $v.secrets }}{{ fail "secrets: that of sharedKeys.secret is read by the account of sharedKeys.kubeconfig, and would be mounted for all processes: remove it" }}{{ end -}}
{{- if not (kindIs "map" ($v.config.replicas | default dict)) }}{{ fail "config.replicas has keys, as docs/configuration.md says, or is {}; how many there are is `replicas`" }}{{ end -}}
{{- if hasKey ($v.config.replicas | default dict) "count" }}{{ fail "config.replicas.count is what `replicas` says: remove it" }}{{ end -}}
{{- $files := list -}}
{{- range $of, $file := dict "enrolments.joinKubeconfig" $v.enrolments.joinKubeconfig "enrolments.readerKubeconfig" $v.enrolments.readerKubeconfig "inventory.ordersKubeconfig" $v.inventory.ordersKubeconfig "inventory.shipperKubeconfig" $v.inventory.shipperKubeconfig "sharedKeys.kubeconfig" $v.sharedKeys.kubeconfig }}
{{- if $file }}
{{- if has $file $files }}{{ fail (printf "%s: %s is that of another account already: each has a file of its own, of `netboot cluster kubeconfigs`" $of $file) }}{{ end -}}
{{- $files = append $files $file -}}
{{- end }}
{{- end -}}
{{- if hasKey ($v.config.replicas | default dict) "name" }}{{ fail "config.replicas.name would be that of all replicas, which are named by their Pods: remove it" }}{{ end -}}
{{- range $name := list "data" "store" }}
{{- $one := index $v.storage $name }}
{{- range $key := list "existingClaim" "hostPath" }}
{{- if and $several (index $one $key) }}{{ fail (printf "%s: storage.%s.%s is one volume, and each replica has its own: remove it, and a claim is made for each (of a Node's own disk: a storageClassName of local volumes)" $of $name $key) }}{{ end }}
{{- end }}
{{- end -}}
{{- /* helm template sees no cluster, and finds nothing here. */ -}}
{{- $map := lookup "v1" "ConfigMap" .Release.Namespace (include "netboot.name" .) -}}
{{- $set := lookup "apps/v1" "StatefulSet" .Release.Namespace (include "netboot.name" .) -}}
{{- if and $map $set }}
{{- $elected := hasKey (fromYaml (index ($map.data | default dict) "netboot.yaml" | default "{}")) "replicas" -}}
{{- if and (ne $elected (not (empty $elects))) (or $several (gt (int $set.spec.replicas) 1)) }}
{{- fail "replicas: who asks for no Lease acts beside the leader, so all but one go before that is changed: upgrade with `replicas: 1` and `config: {replicas: {}}`, and wait until one Pod is left and ready; then go on" }}
{{- end -}}
{{- end -}}
{{- end }}
