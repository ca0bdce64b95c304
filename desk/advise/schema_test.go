package advise

import (
	_ "github.com/compose-spec/compose-go/v2/loader"
	_ "k8s.io/api/core/v1"
	_ "k8s.io/kubelet/config/v1beta1"
	_ "sigs.k8s.io/yaml"
)
