package faultproxy

import (
	"bufio"
	"strings"
	"testing"
)

func TestAFrameIsReadWhole(t *testing.T) {
	for _, test := range []struct{ claim, frame string }{
		{"a simple string", "+OK\r\n"},
		{"an error", "-ERR no\r\n"},
		{"an integer", ":-12\r\n"},
		{"a bulk string", "$5\r\na\r\n\x00b\r\n"},
		{"an empty bulk string", "$0\r\n\r\n"},
		{"nil in RESP2", "$-1\r\n"},
		{"a nil array in RESP2", "*-1\r\n"},
		{"an empty array", "*0\r\n"},
		{"nested arrays", "*3\r\n*2\r\n:1\r\n$1\r\na\r\n*0\r\n+x\r\n"},
		{"nil", "_\r\n"},
		{"a boolean", "#t\r\n"},
		{"a double", ",1.5e3\r\n"},
		{"a big number", "(3492890328409238509324850943850943825024385\r\n"},
		{"a bulk error", "!5\r\nERR x\r\n"},
		{"a verbatim string", "=6\r\ntxt:ab\r\n"},
		{"a map", "%2\r\n+a\r\n:1\r\n$1\r\nb\r\n*1\r\n:2\r\n"},
		{"a set", "~2\r\n:1\r\n:2\r\n"},
		{"a push", ">3\r\n+message\r\n+c\r\n$1\r\nx\r\n"},
		{"attributes and their value", "|1\r\n+ttl\r\n:3\r\n*1\r\n:1\r\n"},
	} {
		r := bufio.NewReaderSize(strings.NewReader(test.frame+"+next\r\n"), 16)
		got, err := readFrame(r, nil)
		if string(got) != test.frame || err != nil {
			t.Errorf("%s: read %q, %v, want %q", test.claim, got, err, test.frame)
		}
		if next, err := readFrame(r, nil); string(next) != "+next\r\n" || err != nil {
			t.Errorf("%s: after it %q, %v, want +next", test.claim, next, err)
		}
	}
}

func TestAnInvalidFrameIsAnError(t *testing.T) {
	for _, test := range []struct{ claim, frame string }{
		{"no bytes", ""},
		{"no type", "\r\n"},
		{"an unknown type", "?1\r\n"},
		{"a string that ends early", "$5\r\nab"},
		{"an array that ends early", "*2\r\n:1\r\n"},
	} {
		if got, err := readFrame(bufio.NewReader(strings.NewReader(test.frame)), nil); err == nil {
			t.Errorf("%s: read %q and no error", test.claim, got)
		}
	}
}

func TestARequestIsReadInWords(t *testing.T) {
	for _, test := range []struct{ claim, raw, want string }{
		{"bulk strings", "*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n", "GET|a\r\nb"},
		{"an empty word", "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", "ECHO|"},
		{"an inline command", "PING  x\r\n", "PING|x"},
		{"no words", "*0\r\n", ""},
		{"no bulk strings", "*1\r\n:1\r\n", ""},
	} {
		raw, args, err := readRequest(bufio.NewReader(strings.NewReader(test.raw + "PING\r\n")))
		words := make([]string, len(args))
		for i, arg := range args {
			words[i] = string(arg)
		}
		if got := strings.Join(words, "|"); string(raw) != test.raw || got != test.want || err != nil {
			t.Errorf("%s: %q, words %q, %v, want %q, words %q", test.claim, raw, got, err, test.raw, test.want)
		}
	}
}
