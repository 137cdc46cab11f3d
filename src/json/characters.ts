/** The characters that JSON is made of, as `charCodeAt` tells them. */
export const QUOTE = 34
export const PLUS = 43
export const COMMA = 44
export const MINUS = 45
export const DOT = 46
export const ZERO = 48
export const NINE = 57
export const COLON = 58
export const BIG_E = 69
export const OPEN_ARRAY = 91
export const BACKSLASH = 92
export const CLOSE_ARRAY = 93
export const SMALL_E = 101
export const OPEN_OBJECT = 123
export const CLOSE_OBJECT = 125
