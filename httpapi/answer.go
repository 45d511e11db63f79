package httpapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/curfew-dev/curfew/internal/jsonx"
)

// answer writes a value as JSON.
func (s *Server) answer(w http.ResponseWriter, status int, value any) {
	text := asJSON(jsonx.Encode(value))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)+1))
	w.WriteHeader(status)
	w.Write(append(text, '\n'))
}

func (s *Server) answerError(w http.ResponseWriter, f *failure) {
	if f.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.after.Seconds()))))
	}
	if f.ends {
		w.Header().Set("Connection", "close")
	}
	s.answer(w, f.status, f.Problem)
}

// bodies are the names of members with data of users.
var bodies = []string{"payload", "result", "output", "user_state"}

// asJSON replaces payloads and results, which jsonx writes as texts, by the JSON that they are. Those that are not JSON are
// written in base64, so that a client can tell the text "1" from the number.
func asJSON(text []byte) []byte {
	if !slices.ContainsFunc(bodies, func(name string) bool { return bytes.Contains(text, []byte(`"`+name+`":"`)) }) {
		return text
	}
	return rewrite(jsonx.Checked(text))
}

// rewrite returns a value with the payloads and results in it replaced.
func rewrite(v jsonx.Value) []byte {
	switch {
	case v.IsObject():
		var o jsonx.Object
		for m := range v.Members() {
			o.Raw(rewritten(m))
		}
		return o.Close()
	case v.IsList():
		var parts [][]byte
		for part := range v.Elements() {
			parts = append(parts, rewrite(part))
		}
		return slices.Concat([]byte("["), bytes.Join(parts, []byte(",")), []byte("]"))
	}
	return v.Text()
}

// rewritten returns the name and the value that a member gets.
func rewritten(m jsonx.Member) (name string, value []byte) {
	if m.Name == "headers" { // they are the user's
		return m.Name, m.Text()
	}
	body, is := "", false
	if slices.Contains(bodies, m.Name) {
		body, is = m.Word()
	}
	var line bytes.Buffer
	switch {
	case !is:
		return m.Name, rewrite(m.Value)
	case json.Compact(&line, []byte(body)) != nil: // it is not JSON
		return m.Name + "_base64", jsonx.Encode(base64.StdEncoding.EncodeToString([]byte(body)))
	}
	return m.Name, line.Bytes()
}
