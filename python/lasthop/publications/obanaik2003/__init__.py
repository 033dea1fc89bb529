"""obanaik2003: performance and security issues of TCP bulk data transfer in a last mile wireless
scenario (thesis, National University of Singapore, 2003).
"""
