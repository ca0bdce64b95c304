//go:build lean

package export

import (
	"errors"
	"io"
)

// parquetFormat is only a name here: what writes it is a quarter of what a build compiles, and `make quickstart` builds
// without it.
var parquetFormat = Format{Name: "parquet", Binary: true, open: openParquet}

func openParquet(io.Writer) (put func(*Row) error, end func() error) {
	err := errors.New("this tare was built by make quickstart, without Parquet; `make build` adds it")
	return func(*Row) error { return err }, func() error { return err }
}
