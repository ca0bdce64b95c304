package words

import (
	"strings"
	"testing"

	"tare/desk/ladder"
)

// A sentence names the single layers that surely cost something, the most expensive first.
func TestWhatSingleLayersCost(t *testing.T) {
	costs := func(c ...ladder.LayerCost) *ladder.Additive { return &ladder.Additive{Costs: c} }
	seccomp := ladder.LayerCost{Layer: "seccomp", Value: 0.182, Low: 0.17, High: 0.194, Probability: 1}
	quota := ladder.LayerCost{Layer: "quota", Value: -0.25, Low: -0.3, High: -0.2, Probability: 0.999}
	memory := ladder.LayerCost{Layer: "memory", Value: 0.03, Low: 0.02, High: 0.04, Probability: 0.96}
	pid := ladder.LayerCost{Layer: "pid", Value: 0.01, Low: 0.005, High: 0.015, Probability: 0.97}
	unsure := ladder.LayerCost{Layer: "uts", Value: 0.4, Low: -0.1, High: 0.9, Probability: 0.7}
	const over = "over only a control group, by the model of single layers, "
	for _, c := range []struct {
		of   *ladder.Additive
		want string
	}{
		{nil, ""},
		{costs(unsure), "no single layer is shown to change the time"},
		{costs(unsure, seccomp), over + "seccomp filter costs 18.2 % (17.0 to 19.4)"},
		{costs(pid, seccomp, memory, quota), over + "CPU quota saves 25 % (20 to 30), seccomp filter costs 18.2 % (17.0 to 19.4), memory limit costs 3.0 % (2.0 to 4.0), and 1 more less than these"},
	} {
		if said := strings.Join(singleLayers(c.of), "; "); said != c.want {
			t.Errorf("%+v: %s; want %s", c.of, said, c.want)
		}
	}
}
