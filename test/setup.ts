import { afterAll } from 'vitest'
import { endFile } from './helpers/at-end-of-file.ts'

// Of each file of tests.
afterAll(endFile)
