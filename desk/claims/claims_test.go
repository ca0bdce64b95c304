package claims

import (
	"testing"
)

func TestShipped(t *testing.T) {
	all, err := Shipped("")
	if err != nil {
		t.Fatal(err)
	}
	t.Log(len(all))
}
