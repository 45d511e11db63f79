package command

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/curfew-dev/curfew/worker"
)

// maxHeaders is how many bytes the headers of a task can have when they are written as JSON. An
// environment and the headers of a request hold little more: Linux limits a variable to 128 KiB.
const maxHeaders = 64 << 10

// checkHeaders returns an error if the headers of a task are too large to hand over.
func checkHeaders(headers map[string]string) error {
	if len(headers) == 0 {
		return nil
	}
	if size := len(headersAsJSON(headers)); size > maxHeaders {
		return worker.Discard(fmt.Errorf("the headers of the task have %d bytes, and a command or URL can be given %d: put large values into the payload", size, maxHeaders))
	}
	return nil
}

// headersAsJSON returns all headers as a JSON object that has ASCII characters only and no control
// characters: every environment and every HTTP header can hold it.
func headersAsJSON(headers map[string]string) string {
	text, err := json.Marshal(headers)
	if err != nil {
		panic(err) // a map of strings can always be encoded
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		text = text[size:]
		switch {
		case r >= 0x10000:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		case r >= 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// plain reports whether a value is fit for an HTTP header as it is.
func plain(value string) bool {
	for i := range len(value) {
		if value[i] < ' ' || value[i] >= 0x7f {
			return false
		}
	}
	return value == strings.TrimSpace(value)
}

// token reports whether a name is fit for an HTTP header: RFC 9110, section 5.6.2.
func token(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return name != ""
}
