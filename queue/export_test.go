package queue

// ResultType is ResultTypeOf of a type that is made while a test runs.
var ResultType = resultType
