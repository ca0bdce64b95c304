package model

import "tare/desk/data"

// What the tests of this package say in words is set by words_test.go: packages that import this one cannot be imported
// from here.
var (
	Sentences func(*Overhead) []string
	Said      func(...data.Doubt) []string
)
