//go:build linux

package bare_test

import (
	"testing"

	"tare/lab/engine/bare"
	"tare/lab/engine/conformance"
)

var subject = conformance.Of(bare.Kind)

func TestMain(m *testing.M) { conformance.Main(m, subject) }

func TestConformance(t *testing.T) {
	conformance.Run(t, subject, conformance.Expectations{
		Provisionings: []string{""},
		SharesKernel:  true,
		HostRoot:      true,
	})
}

func TestNoHello(t *testing.T) { conformance.NoHello(t, subject, "") }

func TestVendorHooks(t *testing.T) { conformance.VendorHooks(t, subject, "") }
