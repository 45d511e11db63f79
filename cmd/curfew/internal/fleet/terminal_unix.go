//go:build linux || darwin

package fleet

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminalSize returns the size of a terminal. ok is false if the file is not a terminal.
func terminalSize(f *os.File) (width, height int, ok bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	return int(size.Col), int(size.Row), true
}

// readKeys makes a terminal give each key at once, without showing it. A read waits for at most a tenth of a second, and
// then returns io.EOF. Ctrl-C is a signal as before. restore undoes that.
func readKeys(f *os.File) (restore func(), err error) {
	fd := int(f.Fd())
	saved, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, err
	}
	raw := *saved
	raw.Lflag &^= unix.ICANON | unix.ECHO
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 0, 1
	raw.Cc[unix.VSUSP] = 0 // a stopped program would leave the screen as it is
	if err := unix.IoctlSetTermios(fd, setTermios, &raw); err != nil {
		return nil, err
	}
	return func() { unix.IoctlSetTermios(fd, setTermios, saved) }, nil
}
