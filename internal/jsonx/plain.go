package jsonx

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Plain returns an error whose text contains no names of Go types. The returned error wraps err.
// Plain returns nil if err is nil.
func Plain(err error) error {
	var wrong *json.UnmarshalTypeError
	var noType *json.UnsupportedTypeError
	var own *json.MarshalerError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return &plain{fmt.Sprintf("JSON: field %s must not be a %s", wrong.Field, wrong.Value), err}
	case errors.As(err, &wrong):
		return &plain{fmt.Sprintf("JSON: it must not be a %s", wrong.Value), err}
	case errors.As(err, &noType):
		return &plain{"JSON: the value contains a type that cannot be encoded as JSON", err}
	case errors.As(err, &own):
		return &plain{"JSON: " + own.Unwrap().Error(), err}
	}
	return err
}

type plain struct {
	text  string
	cause error
}

func (p *plain) Error() string { return p.text }
func (p *plain) Unwrap() error { return p.cause }
