package vocabulary

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// CheckReply returns an error if a name in a reply of a function is not in the vocabulary, or if its value is not
// of its type. Tests use it.
func CheckReply(reply any) error {
	words, is := reply.([]any)
	if !is {
		return nil // an id
	}
	if len(words) > 0 {
		if _, is := words[0].([]any); is {
			return errors.Join(each(words, CheckReply)...)
		}
	}
	if len(words)%2 != 0 {
		return fmt.Errorf("%d names and values", len(words))
	}
	for i := 0; i < len(words); i += 2 {
		name := fmt.Sprint(words[i])
		if err := checkWord(name, words[i+1]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func checkWord(name string, value any) error {
	t, known := Of(name)
	if !known {
		return errUnknown
	}
	list, isList := value.([]any)
	text := fmt.Sprint(value)
	_, err := strconv.ParseFloat(text, 64)
	ok := !isList
	switch t {
	case Number, Instant, Span:
		ok = ok && err == nil
	case Flag:
		ok = text == "0" || text == "1"
	case List:
		if ok = isList; ok {
			return errors.Join(each(list, CheckReply)...)
		}
	case Object:
		return CheckReply(value)
	}
	if !ok {
		return fmt.Errorf("%v is not a %s", value, t)
	}
	return nil
}

var errUnknown = errors.New("the name is not in the vocabulary")

func each(list []any, check func(any) error) (errs []error) {
	for _, member := range list {
		errs = append(errs, check(member))
	}
	return errs
}

// CheckJSON is CheckReply for a decoded line of JSON.
func CheckJSON(value any) error {
	object, is := value.(map[string]any)
	if !is {
		return nil
	}
	_, ofFlow := object["definition"]
	for name, value := range object {
		if _, text := value.(string); name == "version" && ofFlow && text {
			continue // that of the definition
		}
		if err := checkMember(name, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func checkMember(name string, value any) error {
	plain, encoded := strings.CutSuffix(name, "_base64")
	t, known := Of(plain)
	if strings.HasPrefix(plain, "kind:") { // the defaults of a kind
		t, known = Text, true
	}
	ok := known
	switch value := value.(type) {
	case string:
		ok = t == Text
	case float64:
		ok = t == Number || t == Instant || t == Span
	case nil:
		ok = t == Number || t == Instant || t == Span
	case bool:
		ok = t == Flag
	case []any:
		if ok = t == List; ok {
			return errors.Join(each(value, CheckJSON)...)
		}
	case map[string]any:
		if ok = t == Object; name != "key_counts" {
			return CheckJSON(value)
		}
	}
	switch {
	case !known:
		return errUnknown
	case !ok || encoded && t != Text:
		return fmt.Errorf("%v is not a %s", value, t)
	}
	return nil
}
