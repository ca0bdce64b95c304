package model_test

import (
	"tare/desk/data"
	"tare/desk/model"
	"tare/desk/words"
)

func init() {
	model.Sentences = words.Overhead
	model.Said = func(d ...data.Doubt) []string { return words.Doubts(d) }
}
