//go:build !lean

package export

import (
	"io"

	"github.com/parquet-go/parquet-go"
)

// parquetFormat is compressed with Zstandard.
var parquetFormat = Format{Name: "parquet", Binary: true, open: openParquet}

// rowGroup is how many rows are held in memory until they are written.
const rowGroup = 20_000

func openParquet(w io.Writer) (put func(*Row) error, end func() error) {
	p := parquet.NewGenericWriter[Row](w, parquet.MaxRowsPerRowGroup(rowGroup), parquet.Compression(&parquet.Zstd))
	one := make([]Row, 1)
	put = func(r *Row) error {
		one[0] = *r
		_, err := p.Write(one)
		return err
	}
	return put, p.Close
}
