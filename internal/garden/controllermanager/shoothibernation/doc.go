// Package shoothibernation puts Shoots to sleep and wakes them up by the schedules in their specification, each in its own
// time zone. What was missed while nobody looked is made up for if it is not too long ago.
//
// It may import API types, the kit beside it and the component package.
package shoothibernation
