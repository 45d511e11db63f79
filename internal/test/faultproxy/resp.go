package faultproxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// readRequest reads one request, and returns its bytes and its words.
func readRequest(r *bufio.Reader) (raw []byte, args [][]byte, err error) {
	first, err := r.Peek(1)
	if err != nil {
		return nil, nil, err
	}
	if first[0] != '*' { // an inline command: words on a line
		raw, err = r.ReadBytes('\n')
		return raw, bytes.Fields(raw), err
	}
	raw, err = readFrame(r, nil)
	if err != nil {
		return nil, nil, err
	}
	// An array of bulk strings. Any other element gives an empty word.
	rest := raw
	for n := count(next(&rest)); n > 0 && len(rest) > 0; n-- {
		size := max(count(next(&rest)), 0)
		if size+2 > len(rest) {
			break
		}
		args, rest = append(args, rest[:size]), rest[size+2:]
	}
	return raw, args, nil
}

// next removes the first line of b and returns it.
func next(b *[]byte) []byte {
	line, rest, _ := bytes.Cut(*b, []byte("\r\n"))
	*b = rest
	return line
}

// readFrame reads one value of RESP2 or RESP3 and appends its bytes to buf.
func readFrame(r *bufio.Reader, buf []byte) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return buf, err
	}
	buf = append(buf, line...)
	line = bytes.TrimRight(line, "\r\n")
	if len(line) == 0 {
		return buf, fmt.Errorf("found an empty line, want a RESP value")
	}
	values := 0
	switch line[0] {
	case '+', '-', ':', '_', '#', ',', '(':
		return buf, nil
	case '$', '=', '!':
		n := count(line)
		if n < 0 {
			return buf, nil // nil
		}
		at := len(buf)
		buf = append(buf, make([]byte, n+2)...)
		_, err := io.ReadFull(r, buf[at:])
		return buf, err
	case '*', '~', '>':
		values = count(line)
	case '%':
		values = 2 * count(line)
	case '|': // attributes, and then the value that they belong to
		values = 2*count(line) + 1
	default:
		return buf, fmt.Errorf("%q is not the beginning of a RESP value", line)
	}
	for ; values > 0 && err == nil; values-- {
		buf, err = readFrame(r, buf)
	}
	return buf, err
}

// count returns the number after the first byte of a line, or -1 if there is no number.
func count(line []byte) int {
	if len(line) == 0 {
		return -1
	}
	n, err := strconv.Atoi(string(line[1:]))
	if err != nil {
		return -1
	}
	return n
}
