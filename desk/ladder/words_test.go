package ladder_test

import (
	"tare/desk/export"
	"tare/desk/ladder"
	"tare/desk/words"
)

func init() {
	ladder.Sentence = words.Staircase
	ladder.Together = words.Together
	ladder.CSV = export.Staircase
}
