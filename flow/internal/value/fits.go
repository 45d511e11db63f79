package value

import "reflect"

// Fits reports whether a value with all that is below it has about so many bytes as JSON at most. It stops when it has seen as many: what is
// shared in memory is written once for each place that has it.
func Fits(v any, bytes int) bool { return fits(reflect.ValueOf(v), &bytes) }

func fits(v reflect.Value, room *int) bool {
	*room -= len(",")
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || fits(v.Elem(), room)
	case reflect.String:
		*room -= v.Len()
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && !fits(v.Field(i), room) {
				return false
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if !fits(v.Index(i), room) {
				return false
			}
		}
	case reflect.Map:
		for each := v.MapRange(); each.Next(); {
			if !fits(each.Key(), room) || !fits(each.Value(), room) {
				return false
			}
		}
	}
	return *room >= 0
}
