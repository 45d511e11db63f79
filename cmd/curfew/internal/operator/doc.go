// Package operator has the commands about a whole server: functions and namespaces.
package operator
