cdef int parse_number(const unsigned char* text, Py_ssize_t length, double* number) noexcept nogil
