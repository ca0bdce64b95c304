package study

// Question is something that further rounds should answer.
type Question struct {
	Of     []string // the treatments that a round needs to contribute to the answer
	Rounds int      // about how many more rounds are needed; 0: not predictable
}

// Goal returns, between rounds, the questions that the recorded trials leave open.
type Goal func() ([]Question, error)
