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

// asJSON replaces payloads and results, which jsonx writes as texts, by the JSON that they are. Those that are not JSON are
// written in base64, so that a client can tell the text "1" from the number.
func asJSON(text []byte) []byte {
	if !slices.ContainsFunc(bodies, func(name string) bool { return bytes.Contains(text, []byte(`"`+name+`":"`)) }) {
		return text
	}
	var out bytes.Buffer
	rewrite(&out, text)
	return out.Bytes()
}

// bodies are the names of members with data of users.
var bodies = []string{"payload", "result", "output", "user_state"}

// rewrite copies a JSON value, and replaces the payloads and results in it. The text is what jsonx has written, so it is valid.
func rewrite(out *bytes.Buffer, text []byte) {
	if len(text) == 0 || text[0] != '{' && text[0] != '[' {
		out.Write(text)
		return
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.Token()
	out.WriteByte(text[0])
	for first := true; in.More(); first = false {
		if !first {
			out.WriteByte(',')
		}
		name := ""
		if text[0] == '{' {
			word, _ := in.Token()
			name, _ = word.(string)
		}
		var value json.RawMessage
		if in.Decode(&value) != nil {
			return
		}
		member(out, text[0] == '{', name, value)
	}
	out.WriteByte(text[0] + 2) // } or ]
}

func member(out *bytes.Buffer, named bool, name string, value json.RawMessage) {
	var body string
	isBody := slices.Contains(bodies, name) && json.Unmarshal(value, &body) == nil
	if isBody && !json.Valid([]byte(body)) {
		name += "_base64"
		value, _ = json.Marshal(base64.StdEncoding.EncodeToString([]byte(body)))
	} else if isBody {
		var line bytes.Buffer
		json.Compact(&line, []byte(body))
		value = line.Bytes()
	}
	if named {
		quoted, _ := json.Marshal(name)
		out.Write(quoted)
		out.WriteByte(':')
	}
	if isBody || name == "headers" { // these are the user's
		out.Write(value)
		return
	}
	rewrite(out, value)
}
