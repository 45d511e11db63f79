//go:build !linux && !darwin

package fleet

import (
	"errors"
	"os"
)

// terminalSize reports no terminal: top prints one view on this system.
func terminalSize(*os.File) (width, height int, ok bool) { return 0, 0, false }

// readKeys is not called without a terminal.
func readKeys(*os.File) (restore func(), err error) { return nil, errors.ErrUnsupported }
