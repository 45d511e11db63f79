package fleet

import "strconv"

// plain returns a text in printable ASCII, so that it has one cell for each byte and cannot control a terminal.
func plain(s string) string {
	quoted := strconv.QuoteToASCII(s)
	if quoted[1:len(quoted)-1] == s {
		return s
	}
	return quoted
}
