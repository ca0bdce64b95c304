package claims

// Hypothesis is a finding as a statement about ratios of measured means. Exactly one of its forms is there.
type Hypothesis struct {
	All []Hypothesis
	Any []Hypothesis
}
