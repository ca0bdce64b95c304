package words

// Result is the first answer to the question of the folders. A terminal shows all of it, and the report its headline.
type Result struct {
	Headline []string // the finding, a sentence each, what matters most first; never empty
	Tables   []ResultTable
	Absent   []ResultLine // environments without a figure, each once, with the reason
	Made     string       // how the figures were made: rounds, failures, date; empty: nothing was measured
	Blocks   []ResultBlock
}

// ResultTable has one line for each environment at one place: work, size, host and metric. The reference comes first.
type ResultTable struct {
	Of                     string // what was measured, with the metric and its direction
	Value, Change, Verdict string // heads of the columns after the environment
	Lines                  []ResultLine
}

// ResultLine is one environment.
type ResultLine struct {
	Name    string // as Environment gives it
	Value   string // with its interval: "445.5 ± 4.0 ms"
	Change  string // "+0.3 % (−0.8 to +1.4)", or "reference"
	Said    string // the verdict in words: "equivalent, but not zero"
	Missing string // why there is no figure, instead of all these
}

// ResultBlock is one of the lists below the tables.
type ResultBlock struct {
	Head  string
	Lines []ResultItem
}

// ResultItem is one line of a list.
type ResultItem struct {
	Mark    ResultMark
	Label   string // what a command is for
	Text    string
	Command string // as somebody types it
	After   string // follows the command: "about 2 min"
}

// ResultMark says what a line reports about the run.
type ResultMark int

// Marks of lines.
const (
	NoMark  ResultMark = iota
	Passed             // a check passed
	Caution            // something limits the result
)
