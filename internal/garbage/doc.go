// Package garbage says how much garbage the process lets lie before it collects it. It imports nothing of the project.
package garbage
