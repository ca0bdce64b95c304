/* A program that does nothing.   cc -O2 -static -o true true.c */
int main(void) { return 0; }
