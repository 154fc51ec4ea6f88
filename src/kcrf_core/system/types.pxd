# Types of numbers that all modules share: loops over `real` are compiled for both precisions.

ctypedef fused real:
    float
    double

ctypedef long long int64
ctypedef unsigned long long uint64
