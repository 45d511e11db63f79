// Package jsonerr words the errors of encoding/json for people who do not see the program.
package jsonerr

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Plain is an error without the names of Go types, which are the program's own. It wraps
// the error that it is given, and is nil for none.
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
		return &plain{"JSON: it holds something that JSON has no form for", err}
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
