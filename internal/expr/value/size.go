package value

import "reflect"

// Size returns about how many bytes a value has as JSON, with all that is below it. What is shared in memory counts at each place that has
// it. If it has more than most bytes, Size stops there.
func Size(v any, most int) int {
	room := most
	fits(reflect.ValueOf(v), &room)
	return most - room
}

// fits takes the bytes of a value from room, and reports whether there was enough.
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
