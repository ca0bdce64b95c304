//go:build linux

package trace

import "tare/lab/symbols"

// readSymbols reads the kernel's functions when they are first needed.
func (k *Kit) readSymbols() (err error) {
	if k.symbols == nil {
		k.symbols, err = symbols.Kernel()
	}
	return err
}
