/* The shortest thing that can be measured: a process that does nothing. */
int main(void) { return 0; }
