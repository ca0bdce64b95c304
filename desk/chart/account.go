package chart

import (
	"tare/desk/explain"
)

// Account is what a treatment's time went on, with that of what it is compared with.
type Account struct {
	*explain.Account

	// Before is the baseline's own account; nil where there is none.
	Before *explain.Account

	// Title names the treatment, and what it is compared with where that is not its baseline.
	Title string

	// Versus says that it compares two treatments of which each has an account of its own.
	Versus bool
}
